"""Arms on disk: detached worktrees, overlay environments, builds, and checks of what was loaded."""
