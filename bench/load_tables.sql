-- What `kreassign load` makes, by DuckDB from the same files: judged samples, hours with their histograms, what stays open,
-- quarantine, load model, forecast, skew and plan inputs. {data} is the data directory; tables are written to {data}/by_duckdb.
-- Left out, in DuckDB's favour: intervals of the rates, bytes that contradict their records, the backtest, what brokers measured, and the log of the tables.
-- Up to the line of dashes it is run once for each of {buckets} parts of the partitions, so that no table is in memory as a whole;
-- then the rest, once.
SET preserve_insertion_order = false;
CREATE OR REPLACE MACRO middle(a, b, c) AS
    CASE WHEN a + b + c IS NULL THEN least(a, b, c) ELSE greatest(least(a, b), least(greatest(a, b), c)) END;
CREATE OR REPLACE MACRO of_log(log, other, value) AS CASE WHEN coalesce(other = log, true) THEN value END;

CREATE OR REPLACE TEMP TABLE screened AS
SELECT cluster_id, topic, partition, taken_ms, topic_id, leader, start_offset, end_offset, size_bytes,
    hash(topic_id) AS log,
    CASE WHEN taken_ms <= 0 THEN 'no time' WHEN taken_ms < 1293840000000 THEN 'before 2011'
         WHEN taken_ms >= 1293840000000000 THEN 'microseconds' WHEN taken_ms > {now_ms} + 3600000 THEN 'ahead'
         WHEN partition < 0 THEN 'partition' WHEN start_offset < 0 THEN 'start' WHEN end_offset < start_offset THEN 'end'
         WHEN end_offset > 9007199254740992 THEN 'end' WHEN size_bytes < 0 THEN 'size'
         WHEN size_bytes > 281474976710656 THEN 'size' END AS reason
FROM read_parquet('{data}/samples/date=*/*.parquet', hive_partitioning = false)
WHERE hash(cluster_id, topic, partition) % {buckets} = {bucket};

CREATE OR REPLACE TEMP TABLE first_judged AS
WITH near AS (
    SELECT *,
        lag(log, 1) OVER w AS lb1, lag(log, 2) OVER w AS lb2, lag(log, 3) OVER w AS lb3,
        lead(log, 1) OVER w AS la1, lead(log, 2) OVER w AS la2, lead(log, 3) OVER w AS la3,
        lag(end_offset, 1) OVER w AS eb1, lag(end_offset, 2) OVER w AS eb2, lag(end_offset, 3) OVER w AS eb3,
        lead(end_offset, 1) OVER w AS ea1, lead(end_offset, 2) OVER w AS ea2, lead(end_offset, 3) OVER w AS ea3,
        lead(taken_ms) OVER w AS next_ms, lag(size_bytes) OVER w AS size_before, lead(size_bytes) OVER w AS size_after,
        lag(start_offset) OVER w AS start_before
    FROM screened WHERE reason IS NULL
    WINDOW w AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms, end_offset, size_bytes NULLS FIRST)),
same AS (
    SELECT *, of_log(log, lb1, eb1) AS b1, of_log(log, lb2, eb2) AS b2, of_log(log, lb3, eb3) AS b3,
        of_log(log, la1, ea1) AS a1, of_log(log, la2, ea2) AS a2, of_log(log, la3, ea3) AS a3 FROM near),
around AS (
    SELECT *, middle(b1, b2, b3) AS median_before, middle(a1, a2, a3) AS median_after,
        greatest(end_offset - b1, b1 - b2, b2 - b3) AS rise_before,
        greatest(a1 - end_offset, a2 - a1, a3 - a2) AS rise_after,
        greatest(middle(end_offset - b1, b1 - b2, b2 - b3), 0) AS step_before,
        greatest(middle(a1 - end_offset, a2 - a1, a3 - a2), 0) AS step_after FROM same)
SELECT cluster_id, topic, partition, taken_ms, topic_id, leader, start_offset, end_offset, size_bytes, log,
    CASE WHEN next_ms = taken_ms THEN 'twice'
         WHEN lb1 = la1 AND log <> lb1 THEN 'other topic'
         WHEN end_offset < median_before AND rise_after >= median_before - end_offset + step_before THEN 'behind'
         WHEN end_offset > median_after AND median_after >= median_before
              AND rise_before >= end_offset - median_after + step_after
              AND end_offset - median_after > if(a2 IS NOT NULL, 0, 3 * (median_after - median_before) + 1) THEN 'ahead'
         WHEN a1 IS NULL AND b1 > median_before AND end_offset / 2 > b1
              AND end_offset - b1 > 1000.0 * (b1 - median_before) THEN 'jump'
         WHEN size_bytes > 10.0 * greatest(size_before, size_after)
              AND size_bytes - size_before > 10.0 * (abs(end_offset - b1) + 1) * size_before / nullif(b1 - start_before, 0)
              THEN 'size jumps'
         WHEN size_bytes < least(size_before, size_after) / 10 AND size_after IS NOT NULL
              AND size_after - size_bytes > 10.0 * (abs(a1 - end_offset) + 1) * size_before / nullif(b1 - start_before, 0)
              THEN 'size collapses' END AS reason
FROM around;

CREATE OR REPLACE TEMP TABLE judged AS
WITH near AS (
    SELECT *, lag(log) OVER w AS lb, lead(log) OVER w AS la, lead(log, 2) OVER w AS ln, lag(taken_ms) OVER w AS mb,
        lag(end_offset) OVER w AS eb, lead(end_offset) OVER w AS ea, lead(end_offset, 2) OVER w AS en,
        lag(size_bytes) OVER w AS sb
    FROM first_judged WHERE reason IS NULL
    WINDOW w AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms)),
same AS (
    SELECT * EXCLUDE (mb, eb, sb, ea, en), of_log(log, lb, mb) AS mb, of_log(log, lb, eb) AS eb, of_log(log, lb, sb) AS sb,
        of_log(log, la, ea) AS ea, of_log(log, ln, en) AS en FROM near)
SELECT cluster_id, topic, partition, taken_ms, topic_id, leader, start_offset, end_offset, size_bytes,
    CASE WHEN end_offset < eb AND eb <= ea THEN 'behind one'
         WHEN end_offset > ea AND ea >= eb AND end_offset > en THEN 'ahead of two'
         WHEN end_offset < eb AND ea IS NULL THEN 'behind at the end'
         WHEN (end_offset - eb) * 1000.0 > 100000000.0 * (taken_ms - mb) THEN 'too fast'
         WHEN (size_bytes - sb) * 1000.0 > 50000000000.0 * (taken_ms - mb) THEN 'grows too fast' END AS reason
FROM same
UNION ALL SELECT * EXCLUDE (log) FROM first_judged WHERE reason IS NOT NULL;

CREATE OR REPLACE TEMP TABLE placed AS
SELECT *, row_number() OVER (PARTITION BY cluster_id, topic, partition
                             ORDER BY taken_ms, end_offset, size_bytes NULLS FIRST) AS place FROM judged;

CREATE OR REPLACE TEMP TABLE rates AS
WITH paired AS (
    SELECT *, lag(taken_ms) OVER w AS mb, lag(end_offset) OVER w AS eb, lag(topic_id) OVER w AS ib,
        lag(leader) OVER w AS lb, lag(start_offset) OVER w AS ob, lag(size_bytes) OVER w AS sb,
        lead(taken_ms, 9) OVER w AS right_ms, lead(taken_ms, 5) OVER w AS left_ms
    FROM placed WHERE reason IS NULL WINDOW w AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms)),
grown AS (
    SELECT *, (taken_ms - mb) / 1000.0 AS seconds,
        coalesce((topic_id <> ib)::INT, (end_offset < 0.5 * eb)::INT, 0) AS is_reset,
        leader = lb AND start_offset = ob AND size_bytes >= sb AS only_grew FROM paired),
counted AS (
    SELECT *, sum(is_reset) OVER (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms) AS epoch,
        CASE WHEN is_reset = 0 AND end_offset >= eb THEN end_offset - eb END AS new_records FROM grown),
near AS (
    SELECT *, lag(seconds, 1) OVER w AS s1, lag(seconds, 2) OVER w AS s2, lag(seconds, 3) OVER w AS s3,
        lag(seconds, 4) OVER w AS s4, lead(seconds, 1) OVER w AS s5, lead(seconds, 2) OVER w AS s6,
        lead(seconds, 3) OVER w AS s7, lead(seconds, 4) OVER w AS s8
    FROM counted WINDOW w AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms)),
gaps AS (
    SELECT *, (s1 IS NOT NULL)::INT + (s2 IS NOT NULL)::INT + (s3 IS NOT NULL)::INT + (s4 IS NOT NULL)::INT
        + (s5 IS NOT NULL)::INT + (s6 IS NOT NULL)::INT + (s7 IS NOT NULL)::INT + (s8 IS NOT NULL)::INT AS known,
        coalesce((3 * s1 >= seconds)::INT, 0) + coalesce((3 * s2 >= seconds)::INT, 0)
        + coalesce((3 * s3 >= seconds)::INT, 0) + coalesce((3 * s4 >= seconds)::INT, 0)
        + coalesce((3 * s5 >= seconds)::INT, 0) + coalesce((3 * s6 >= seconds)::INT, 0)
        + coalesce((3 * s7 >= seconds)::INT, 0) + coalesce((3 * s8 >= seconds)::INT, 0) AS alike FROM near)
SELECT cluster_id, topic, partition, epoch, place, taken_ms, leader, start_offset, end_offset, size_bytes, seconds,
    new_records,
    CASE WHEN only_grew THEN new_records END AS sized_records,
    CASE WHEN only_grew AND new_records IS NOT NULL THEN size_bytes - sb END AS new_bytes, right_ms, left_ms,
    new_records IS NOT NULL AND NOT (known >= 3 AND alike < if(known = 8, 2, 1)) AS is_good
FROM gaps;

CREATE OR REPLACE TEMP TABLE open_from AS
WITH latest AS (SELECT cluster_id, topic, partition, max(taken_ms) AS latest_ms FROM rates GROUP BY ALL)
SELECT cluster_id, topic, partition,
    least(min(CASE WHEN right_ms IS NULL OR right_ms >= latest_ms - 7200000 THEN taken_ms END),
          any_value(latest_ms) - 7200000) // 3600000 * 3600000 AS open_from_ms
FROM rates JOIN latest USING (cluster_id, topic, partition) GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE hours AS
WITH binned AS (
    SELECT *, taken_ms // 3600000 * 3600000 AS hour_ms, CASE WHEN is_good AND seconds > 0 THEN new_records / seconds END AS rate
    FROM rates),
units AS (
    SELECT cluster_id, topic, partition, epoch, hour_ms, sum(new_bytes) / nullif(sum(sized_records), 0) AS record_bytes,
        list_reduce(list(coalesce(size_bytes, 0)), lambda one, other: gcd(one, other)) AS unit FROM binned GROUP BY ALL),
weighed AS (
    SELECT binned.*, rate * CASE WHEN coalesce(record_bytes * sized_records >= 50 * unit, false)
        THEN coalesce(round(new_bytes / nullif(sized_records, 0) / nullif(record_bytes, 0), 9), 1) ELSE 1 END AS weighed_rate
    FROM binned JOIN units USING (cluster_id, topic, partition, epoch, hour_ms)),
deviations AS (
    SELECT *, weighed_rate / nullif(avg(weighed_rate) OVER w, 0) - 1 AS deviation FROM weighed
    WINDOW w AS (PARTITION BY cluster_id, topic, partition, epoch, hour_ms)),
products AS (
    SELECT *, CASE WHEN place = lag(place) OVER w + 1 THEN deviation * lag(deviation) OVER w END AS product FROM deviations
    WINDOW w AS (PARTITION BY cluster_id, topic, partition, epoch, hour_ms ORDER BY taken_ms)),
reversals AS (
    SELECT cluster_id, topic, partition, epoch, hour_ms, coalesce(round_even(1000000 * (-coalesce(sum(product), 0)
        - count(product) * sum(deviation * deviation) / nullif(count(deviation) * (count(deviation) - 1), 0)), 0), 0)::BIGINT
        AS reversal_sum FROM products GROUP BY ALL),
sums AS (
    SELECT cluster_id, topic, partition, epoch, hour_ms, sum(seconds) FILTER (new_records IS NOT NULL) AS seconds,
        sum(seconds) FILTER (is_good) AS good_seconds, sum(seconds * seconds) FILTER (is_good) AS squared_seconds,
        sum(new_records) FILTER (is_good) AS good_records, sum(round(rate * 1000000)::BIGINT) AS rate_sum,
        sum(new_records) AS new_records, max(new_records) AS most_new_records, sum(sized_records) AS sized_records,
        sum(new_bytes) AS new_bytes, avg(size_bytes) AS mean_size_bytes, count(*) AS sample_count,
        min(taken_ms) AS first_ms, max(taken_ms) AS last_ms, arg_max(leader, taken_ms) AS last_leader,
        arg_max(start_offset, taken_ms) AS last_start_offset, arg_max(end_offset, taken_ms) AS last_end_offset,
        arg_max(size_bytes, taken_ms) AS last_size_bytes FROM binned GROUP BY ALL),
bins AS (
    SELECT cluster_id, topic, partition, epoch, hour_ms,
        CASE WHEN weighed_rate > 0 THEN ceil(ln(weighed_rate) / 0.010000083334583399)::INT ELSE -1000000 END AS bin,
        count(*) AS rate_count
    FROM weighed WHERE weighed_rate IS NOT NULL GROUP BY ALL),
histograms AS (
    SELECT cluster_id, topic, partition, epoch, hour_ms, list(bin ORDER BY bin) AS rate_bins,
        list(rate_count ORDER BY bin) AS rate_counts FROM bins GROUP BY ALL)
SELECT sums.*, reversal_sum, rate_bins, rate_counts, hour_ms >= open_from_ms AS is_open
FROM sums JOIN reversals USING (cluster_id, topic, partition, epoch, hour_ms)
    LEFT JOIN histograms USING (cluster_id, topic, partition, epoch, hour_ms)
    JOIN open_from USING (cluster_id, topic, partition);

COPY hours TO '{data}/by_duckdb/load_hours/{bucket}.parquet' (FORMAT parquet);
COPY (SELECT judged.*, open_from_ms FROM judged JOIN open_from USING (cluster_id, topic, partition)
      LEFT JOIN (SELECT cluster_id, topic, partition, taken_ms, left_ms FROM rates)
          USING (cluster_id, topic, partition, taken_ms)
      WHERE taken_ms >= open_from_ms OR coalesce(left_ms >= open_from_ms, true))
    TO '{data}/by_duckdb/open_samples/{bucket}.parquet' (FORMAT parquet);
COPY (SELECT 'samples' AS table_name, reason, to_json(row(taken_ms, topic, partition, end_offset, size_bytes)) AS row_json
      FROM (SELECT * EXCLUDE (log) FROM screened WHERE reason IS NOT NULL
            UNION ALL SELECT * FROM judged WHERE reason IS NOT NULL AND reason <> 'twice'))
    TO '{data}/by_duckdb/quarantine/{bucket}.parquet' (FORMAT parquet);

-------
DROP TABLE hours;
CREATE TEMP VIEW hours AS SELECT * FROM read_parquet('{data}/by_duckdb/load_hours/*.parquet');

CREATE TEMP TABLE load_model AS
WITH latest AS (SELECT * FROM hours QUALIFY epoch = max(epoch) OVER (PARTITION BY cluster_id, topic, partition)),
figures AS (
    SELECT cluster_id, topic, partition, sum(new_records) / sum(seconds) AS records_per_s,
        sum(new_bytes) / sum(sized_records) AS bytes_per_record, sum(sample_count) AS sample_count,
        (max(last_ms) - min(first_ms)) / 1000.0 AS span_s, sum(good_seconds) AS good_s FROM latest GROUP BY ALL),
shifted AS (
    SELECT cluster_id, topic, partition, rate_counts, rate_bins,
        coalesce(round(ln(new_bytes / nullif(sized_records, 0) / nullif(bytes_per_record, 0)) / 0.010000083334583399), 0) AS shift
    FROM latest JOIN figures USING (cluster_id, topic, partition)),
entries AS (
    SELECT cluster_id, topic, partition, unnest(rate_bins) + shift AS bin, unnest(rate_counts) AS rate_count FROM shifted),
merged AS (SELECT cluster_id, topic, partition, bin, sum(rate_count) AS rate_count FROM entries GROUP BY ALL),
placed AS (
    SELECT *, sum(rate_count) OVER (PARTITION BY cluster_id, topic, partition ORDER BY bin) AS seen,
        sum(rate_count) OVER (PARTITION BY cluster_id, topic, partition) AS total FROM merged),
percentiles AS (
    SELECT cluster_id, topic, partition, exp(0.01 * min(bin) FILTER (seen > round(0.5 * (total - 1)))) AS p50,
        exp(0.01 * min(bin) FILTER (seen > round(0.95 * (total - 1)))) AS p95,
        exp(0.01 * min(bin) FILTER (seen > round(0.99 * (total - 1)))) AS p99 FROM placed GROUP BY ALL),
daily AS (
    SELECT cluster_id, topic, partition, hour_ms // 3600000 % 24 AS hour, sum(new_records) / sum(seconds) AS rate
    FROM latest GROUP BY ALL),
peaks AS (
    SELECT cluster_id, topic, partition, max(rate) AS peak, arg_max(hour, rate) AS peak_hour FROM daily GROUP BY ALL),
days AS (
    SELECT cluster_id, topic, partition, hour_ms // 86400000 AS day, sum(new_records) / sum(seconds) AS rate,
        avg(mean_size_bytes) AS size FROM latest GROUP BY ALL),
trends AS (
    SELECT cluster_id, topic, partition, regr_slope(ln(nullif(rate, 0)), day) AS growth, regr_slope(size, day) AS size_growth,
        count(*) AS day_count FROM days GROUP BY ALL),
sizes AS (
    SELECT cluster_id, snapshot_id, topic, partition,
        coalesce(max(size_bytes) FILTER (is_leader), max(size_bytes)) AS size_bytes
    FROM read_parquet('{data}/replicas/date=*/*.parquet', hive_partitioning = false) GROUP BY ALL)
SELECT * FROM sizes LEFT JOIN figures USING (cluster_id, topic, partition)
    LEFT JOIN percentiles USING (cluster_id, topic, partition) LEFT JOIN peaks USING (cluster_id, topic, partition)
    LEFT JOIN trends USING (cluster_id, topic, partition);

COPY load_model TO '{data}/by_duckdb/load_model.parquet' (FORMAT parquet);
COPY (SELECT cluster_id, snapshot_id, topic, partition, size_bytes + 30 * size_growth AS size_bytes,
          records_per_s * exp(growth * 18) AS records_per_s FROM load_model)
    TO '{data}/by_duckdb/forecast.parquet' (FORMAT parquet);
COPY (SELECT cluster_id, topic, sum(records_per_s) AS records_per_s, max(records_per_s) / avg(records_per_s) AS hottest_ratio,
          arg_max(partition, records_per_s) AS hottest_partition FROM load_model GROUP BY ALL)
    TO '{data}/by_duckdb/skew.parquet' (FORMAT parquet);
COPY (SELECT broker, position, is_leader, load_model.*
      FROM read_parquet('{data}/replicas/date=*/*.parquet', hive_partitioning = false) AS replicas
          JOIN load_model USING (cluster_id, snapshot_id, topic, partition))
    TO '{data}/by_duckdb/plan_inputs.parquet' (FORMAT parquet);
