"""Robots shipped with the library; `holoctl.robot_file` finds them."""
