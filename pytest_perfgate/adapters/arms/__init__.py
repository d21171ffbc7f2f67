"""Arms on disk: detached worktrees, overlay environments, builds, and the proof of what was loaded."""
