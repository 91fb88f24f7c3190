"""Controllers: feedback cancellation with a reference law."""
