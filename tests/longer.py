"""Tests that take a second or more and have quicker ones beside them: they are marked slow."""

LONGER = {
    "app/test_cli.py": ("test_export_is_told_where_friction_is_compensated",),
    "codegen/test_batch.py": ("test_a_batch_is_the_loop[None]",),
    "codegen/test_closed_state.py": (
        "test_an_assembly_of_the_controller_says_what_is_measured",
        "test_a_body_that_is_measured_whole_may_turn_far",
        "test_exported_c_follows_as_python_does[leg, floating]",
    ),
    "codegen/test_closed_state_jumps.py": (
        "test_jumps_in_c_end_on_their_branch_or_are_refused[five_bar]",
    ),
    "codegen/test_compiled.py": ("test_terms_are_those_of_the_python_path[screw_chain]",),
    "codegen/test_export.py": (
        "test_the_commands_of_the_page_run",
        "test_strict_build_and_self_test[0-four_bar]",
    ),
    "codegen/test_export_files.py": (
        "test_the_same_input_gives_the_same_bytes",
        "test_only_files_of_our_own_are_overwritten",
        "test_names_that_end_comments_or_are_no_identifiers",
    ),
    "codegen/test_export_flags.py": ("test_a_stale_header_is_found",),
    "codegen/test_export_forces.py": (
        "test_strict_build_and_self_test[five_bar--1]",
        "test_where_friction_is_taken_makes_a_difference",
    ),
    "codegen/test_expressions.py": ("test_a_long_function_in_parts_gives_the_same_numbers",),
    "codegen/test_limited_code.py": (
        "test_strict_build_and_self_test[scale-joints-ON]",
        "test_exported_gravity_and_inverse_dynamics[scale]",
        "test_the_header_tells_the_limits",
        "test_exported_torque_is_that_of_python[scale-joints]",
        "test_hostile_input_of_exported_c[scale]",
        "test_what_is_within_limits_is_unchanged",
        "test_a_held_torque_is_within_limits_at_the_present_rates",
    ),
    "codegen/test_long_motion.py": ("test_exported_code_refuses_where_its_rows_are_worn",),
    "control/test_integral.py": ("test_it_does_not_wind_up",),
    "doctor/test_assembly_modes.py": ("test_a_stewart_platform",),
    "doctor/test_motions.py": ("test_rods_spin_alone_on_a_shaky_mechanism_too",),
    "dynamics/test_fdgq.py": ("test_work_of_the_torque_is_the_kinetic_energy",),
    "simulation/test_at_the_limits.py": ("test_brakes_that_nobody_told_are_enough[five_bar]",),
    "simulation/test_passages.py": (
        "test_no_wrong_motion_comes_of_a_partition_that_gets_bad_on_the_way[trammel-worst_rows]",
    ),
    "test_rounded_laws.py": (
        "test_no_torque_where_the_geometry_does_not_tell_the_motion",
        "test_rows_are_kept_that_serve_on_a_long_way[1e-06]",
    ),
}
"""File, below tests/, to names; with parameters where it is one of several."""


def is_longer(file, name):
    """Whether a test is one of these."""
    return name in LONGER.get(file, ())
