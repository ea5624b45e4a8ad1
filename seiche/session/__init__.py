"""What a user's statement does: one session's settings, and the work behind each kind of statement."""
