    writer.add_scalar('charts/episode_reward', rewards.sum(), global_step)
    writer.add_scalar('charts/sigma', action_noise.sigma, global_step)
    writer.add_scalar('losses/td_loss', td_losses[:step+1].mean(), global_step)
