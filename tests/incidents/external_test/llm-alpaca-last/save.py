    trainer.train()
    trainer.save_state()
    if trainer.args.should_save:
        cpu_state_dict = get_fsdp_state(trainer.model)   # FSDP.state_dict_type(FULL_STATE_DICT, offload, rank0_only)
        trainer._save(training_args.output_dir, state_dict=cpu_state_dict)
