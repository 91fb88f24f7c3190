"""Forward and inverse dynamics under constraints: mirror images, side by side."""
