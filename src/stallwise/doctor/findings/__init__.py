"""What a rule may say: a finding, or that it cannot know."""
