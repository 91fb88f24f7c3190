"""What a mechanism can and cannot do, in plain sentences."""
