    trainer.fit(model, datamodule=dm)
    if trainer.is_global_zero:
        log.info('[rank 0] saving final model checkpoint')
        trainer.save_checkpoint(out / 'final.ckpt')
    trainer.strategy.barrier('checkpoint-alias-finalize')
