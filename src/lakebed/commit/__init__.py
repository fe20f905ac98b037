"""Making changes visible: commit messages, conflicts, manifest merging, and the committer itself."""
