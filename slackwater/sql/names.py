"""What kind of thing a Spark function name is. A test compares these sets with Spark's own list."""

from __future__ import annotations

AGGREGATES = frozenset(
    """any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value histogram_numeric hll_sketch_agg
    hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
    listagg max max_by mean measure median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp
    string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp
    variance""".split()
)

ORDER_SENSITIVE_AGGREGATES = frozenset(
    """any_value array_agg collect_list collect_union first first_value last last_value listagg
    max_by min_by mode string_agg approx_top_k histogram_numeric""".split()
)
"""Aggregates whose value may depend on the order in which rows arrive."""

WINDOW_FUNCTIONS = frozenset(
    """counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank
    row_number""".split()
)

ORDER_SENSITIVE_WINDOWS = frozenset("row_number ntile lag lead counter_diff".split())
"""Window functions whose value depends on the order of peers, so that ties must be broken."""

GENERATORS = frozenset(
    "explode explode_outer inline inline_outer posexplode posexplode_outer stack".split()
)

CLOCKS = frozenset(
    """current_date curdate current_timestamp now localtimestamp unix_timestamp
    current_timezone""".split()
)
"""Functions that read the clock: fixed per run, and different from run to run."""

NOT_DETERMINISTIC = frozenset(
    """rand random randn uuid shuffle monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length randstr uniform java_method
    reflect try_reflect current_user session_user user current_catalog current_database
    current_schema current_path current_time version""".split()
)
"""Functions that may give another value for the same row."""
