"""What of the costly tests the default run takes: it has to end while whoever waits for it still looks.

A test named here shows by night what by day it shows in fewer cases, or what another test shows by day in smaller.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

BY_NIGHT: Final = frozenset(
    {
        "cdc/mysql/test_following.py::test_copy_under_writers",
        "cdc/mysql/test_new_shards.py::test_a_new_table_among_several_that_share_one",
        "cdc/mysql/test_new_shards.py::test_a_new_table_where_truncate_fails",
        "cdc/mysql/test_new_shards.py::test_a_table_of_many_that_is_emptied_at_once",
        "cdc/mysql/test_renames.py::test_columns_of_a_table_that_is_gone_by_now",
        "cdc/mysql/test_renames.py::test_renamed_under_writers",
        "cdc/mysql/test_renames.py::test_tables_that_change_places_while_they_are_copied",
        "cdc/mysql/test_secrets.py::test_no_password_is_shown_or_kept",
        "cdc/mysql/test_workload.py::test_batches_that_die_and_are_repeated",
        "cdc/pipeline/test_local_workload.py::test_batches_that_die_and_are_repeated",
        "cdc/pipeline/test_on_connect.py::test_a_sync_on_spark_connect",
        "cdc/postgres/test_spark_source.py::test_continuous_stream_keeps_one_connection",
        "cdc/postgres/test_transfers.py::test_no_transfer_is_seen_in_part",
        "compat/test_every_commit.py::test_the_histories_contain_every_kind_of_commit",
        "compat/test_matrix_options.py::test_zone_of_a_reader_changes_nothing",
        "differential/test_names.py::test_expressions_are_called_as_in_spark",
        "pipelines/test_topics.py::test_a_broker_that_is_away",
        "pipelines/test_topics.py::test_a_pipeline_runs_once",
        "properties/test_combinations_judged.py::test_judges_read_combinations",
        "spark/test_late_workers.py::test_a_stream_starts_although_its_first_worker_does_not",
        "spark/test_moving_keys.py::test_large_batches_among_small_ones",
        "spark/test_other_python.py::test_workers_run_on_the_python_of_the_driver",
        "spark/test_stream_soak.py::test_all_at_once",
        "spark/test_stream_source.py::test_a_stream_into_another_table_makes_the_same_table",
        "views/test_deltas_on_spark.py::test_tasks_follow_changes",
        "views/test_on_spark.py::test_a_key_of_what_spark_computes_is_checked",
        "views/test_on_spark.py::test_of_two_refreshes_by_spark_one_counts",
        "views/test_tpch.py::test_tpch_follows_its_refresh_streams",
    }
)
"""Tests that the night has alone."""

ONE_IN: Final[Mapping[str, int]] = {
    "cdc/mysql/test_at_the_source.py::test_nothing_is_made_by_a_sync_that_can_not_work": 3,
    "cdc/mysql/test_copy.py::test_parts_make_up_the_table": 3,
    "cdc/mysql/test_following.py::test_copy_and_stream_give_the_database": 2,
    "cdc/mysql/test_transfers.py::test_no_transfer_is_seen_in_part": 2,
    "cdc/mysql/test_values.py::test_the_log_and_a_query_give_the_same_arrays": 2,
    "cdc/mysql/test_values.py::test_values_at_the_edges": 2,
    "cdc/pipeline/test_on_spark.py::test_a_sync_that_dies_at_any_step_is_made_up_for": 2,
    "cdc/pipeline/test_postgres_workload.py::test_the_lake_equals_the_database": 2,
    "cdc/pipeline/test_renames.py::test_tables_that_change_places": 2,
    "cdc/postgres/test_pitfalls.py::test_a_crash_of_the_server_loses_and_repeats_nothing": 2,
    "cdc/postgres/test_stream.py::test_copy_then_stream_gives_the_database": 2,
    "cdc/postgres/test_stream.py::test_copy_under_writers_has_no_gap_and_no_duplicate": 2,
    "compat/test_benchmarks.py::test_benchmark_runs": 2,
    "compat/test_changelogs.py::test_java_and_lakebed_tell_alike": 3,
    "compat/test_changelogs.py::test_judges_read_what_lakebed_tells": 3,
    "compat/test_column_marks.py::test_marked_rows_are_hidden_in_all_columns": 2,
    "compat/test_engines.py::test_java_and_lakebed_compact_in_turns": 3,
    "compat/test_engines.py::test_other_judges_read_what_lakebed_compacted": 3,
    "compat/test_every_commit.py::test_judges_read_after_every_commit": 3,
    "compat/test_every_commit.py::test_we_read_after_every_commit_of_theirs": 2,
    "compat/test_matrix.py::test_java_compacts_and_overwrites": 2,
    "compat/test_matrix.py::test_judge_and_lakebed_take_turns": 3,
    "compat/test_matrix.py::test_judge_reads_what_lakebed_wrote": 3,
    "compat/test_matrix_evolution.py::test_judges_read_altered_tables": 3,
    "compat/test_matrix_keys.py::test_java_and_lakebed_update_each_others_keys": 3,
    "compat/test_matrix_keys.py::test_partition_directories_are_those_of_java": 3,
    "compat/test_matrix_options.py::test_filters": 3,
    "compat/test_matrix_options.py::test_statistics_modes": 2,
    "compat/test_text_files.py::test_keyed_json_files_of_ours": 2,
    "compat/test_version_before.py::test_goes_on_as_before": 2,
    "conformance/test_cases.py::test_case": 3,
    "differential/test_expressions.py::test_both_engines_agree": 4,
    "differential/test_floating.py::test_statistics_agree_up_to_rounding": 4,
    "differential/test_queries.py::test_both_engines_agree": 4,
    "differential/test_statements.py::test_random_statements_do_the_same": 2,
    "differential/test_statements.py::test_statements_do_the_same": 2,
    "faults/test_changelog_faults.py::test_failed_here_and_there": 4,
    "faults/test_changelog_faults.py::test_killed_anywhere": 4,
    "faults/test_every_operation.py::test_disk_gone_from_some_point_on": 3,
    "faults/test_every_operation.py::test_one_failure_anywhere": 4,
    "faults/test_expiry.py::test_a_commit_meanwhile": 3,
    "faults/test_expiry.py::test_one_failure_anywhere": 3,
    "faults/test_expiry.py::test_two_expiries_at_once": 3,
    "faults/test_interrupt.py::test_interrupt_anywhere": 3,
    "faults/test_processes.py::test_primary_key_table": 2,
    "faults/test_row_change_faults.py::test_one_failure_anywhere": 3,
    "faults/test_upkeep.py::test_one_failure_anywhere": 4,
    "faults/test_upkeep.py::test_two_at_once": 3,
    "faults/test_waiting_rows.py::test_every_operation_of_placing_rows": 3,
    "mutants/test_mutants.py::test_sound_code_has_no_finding": 3,
    "properties/test_bucket_modes_model.py::test_tables_that_choose_buckets": 2,
    "properties/test_changelog_model.py::test_changelog": 2,
    "properties/test_column_histories.py::test_rows_and_ids_are_those_of_the_model": 2,
    "properties/test_combinations.py::test_combinations": 3,
    "properties/test_compaction_does_not_matter.py::test_however_it_is_committed_and_compacted": 3,
    "properties/test_cross_partition_model.py::test_moving_keys": 2,
    "properties/test_diff_model.py::test_all_ways_tell_the_same": 2,
    "properties/test_diff_model.py::test_differences_lead_from_state_to_state": 2,
    "properties/test_engines_model.py::test_engine": 2,
    "properties/test_kept_keys_model.py::test_moving_keys_in_shares": 3,
    "properties/test_lookup_model.py::test_any_engine": 3,
    "properties/test_masking_model.py::test_masking": 3,
    "properties/test_snapshot_order_model.py::test_snapshot_order": 2,
    "spark/test_changes.py::test_changes_by_several_tasks": 2,
    "spark/test_clustering.py::test_a_frame_is_sorted_across_tasks": 2,
    "spark/test_combinations.py::test_sound_code_has_no_finding": 3,
    "spark/test_key_indexes.py::test_keys_move_between_partitions": 3,
    "spark/test_moving_keys.py::test_a_stream_that_is_restarted_midway": 2,
    "spark/test_reading.py::test_files_with_marked_rows_are_read_by_spark": 4,
    "spark/test_row_jobs.py::test_rows_change_in_tasks": 4,
    "spark/test_sql_changes.py::test_delete": 3,
    "spark/test_sql_changes.py::test_merge": 3,
    "spark/test_sql_changes.py::test_update": 3,
    "spark/test_sql_habits.py::test_values_are_those_of_spark": 2,
    "spark/test_sql_queries.py::test_queries": 2,
    "spark/test_sql_values.py::test_both_ways_store_the_same": 3,
    "spark/test_statement_rules.py::test_a_null_that_is_shown_as_a_default_stays_null": 3,
    "spark/test_statement_rules.py::test_delete_keeps_what_reads_hide": 2,
    "spark/test_statement_rules.py::test_statements_in_vain_leave_no_snapshot": 2,
    "spark/test_stream_sink.py::test_a_batch_is_whole_whoever_writes_it": 2,
    "spark/test_stream_sink.py::test_a_stopped_query_leaves_no_debris": 2,
    "spark/test_stream_sink.py::test_r_01_a_batch_that_was_committed_is_not_committed_again": 2,
    "spark/test_writing.py::test_rows_arrive": 3,
    "unit/changes/test_incremental_diff.py::test_a_difference_leads_from_one_state_to_the_other": 2,
    "unit/definition/test_later_changes.py::test_another_changelog_producer_keeps_sums": 2,
    "unit/embedded/test_overlay.py::test_random_histories": 2,
    "unit/explain/test_why.py::test_it_shows_what_a_read_shows": 3,
    "unit/lsm/compaction/test_histories.py::test_no_reader_can_tell_what_was_compacted": 2,
    "unit/merge/aggregates/test_scalar_cuts.py::test_any_cut_equals_the_fold_row_by_row": 3,
    "unit/merge/test_parts.py::test_parts_merge_like_all_rows_at_once": 2,
    "unit/merge/test_parts.py::test_parts_without_numbers_are_in_order_of_arrival": 2,
    "unit/read/test_filtered_merge.py::test_a_filter_before_the_merge_shows_the_same_rows": 2,
    "unit/read/test_value_lookup.py::test_lookups_are_filters": 2,
    "unit/rewrite/test_compacting.py::test_streams_compact_small_buckets_as_a_whole": 4,
    "unit/rewrite/test_compacting.py::test_writing_keeps_the_number_of_runs_small": 3,
    "unit/rewrite/test_rows_by_key.py::test_rows_take_the_place_of_stored_ones": 4,
    "unit/rewrite/test_sorting.py::test_curves_help_filters_on_all_columns": 2,
    "unit/sql/test_query.py::test_every_kind_of_table": 2,
    "unit/table/test_dataset.py::test_duckdb_finds_the_same_rows": 3,
    "unit/table/test_lazy_outputs.py::test_filters_in_every_form": 4,
    "unit/table/test_polars_scan.py::test_polars_finds_the_same_rows": 3,
    "unit/write/test_cross_partition.py::test_where_a_key_leaves_is_told_before_where_it_comes_to": 2,
    "unit/write/test_told_replacements.py::test_whatever_replaces_rows_tells_it": 2,
    "views/inserts/test_kinds_of_targets.py::test_a_table_that_adds_up": 2,
    "views/inserts/test_kinds_of_targets.py::test_a_table_with_the_rows_of_a_query": 2,
    "views/inserts/test_meanings.py::test_sums_of_a_table_are_those_of_the_query": 2,
    "views/inserts/test_random_histories.py::test_a_table_with_the_key_of_the_query_has_its_rows": 2,
    "views/test_in_parts.py::test_parts_give_what_the_whole_gives": 2,
    "views/test_kinds_of_tables.py::test_every_kind_of_table": 3,
    "views/test_on_spark.py::test_large_ones_are_jobs_of_spark": 2,
    "views/test_temporal_joins.py::test_random_histories": 3,
    "views/test_written_queries.py::test_views_are_what_their_queries_give": 5,
}
"""Tests of which the day has one case in so many."""


def by_night(nodeids: Iterable[str]) -> set[str]:
    """Those of the collected tests that only the nightly run has. A case that is asked for alone is the day's."""
    nightly, shared = set(), defaultdict(list)
    for nodeid in nodeids:
        test, _, case = nodeid.removeprefix("tests/").partition("[")
        if test in BY_NIGHT:
            nightly.add(nodeid)
        elif test in ONE_IN:
            shared[test].append((zlib.crc32(case.encode()), nodeid))  # in an order that follows no parameter
    for test, cases in shared.items():
        chosen = -(-len(cases) // ONE_IN[test])
        nightly |= {nodeid for _, nodeid in sorted(cases)[chosen:]}
    return nightly


__all__ = ["BY_NIGHT", "ONE_IN", "by_night"]
