-- Makes the tables that grow partitioned by the time of the prediction. No row is copied: what is there stays in the default partition, until
-- retention has cleared it. Run it while the servers are stopped, in one transaction:
--   psql --single-transaction --set ON_ERROR_STOP=1 --file partition.sql URL
-- A prediction's name is predictions/ and a UUID of version 7, whose first twelve hexadecimal digits are milliseconds since 1970. Rows without a
-- prediction, or with a name of another form, go to the default partition as well.

DO $$
DECLARE
  grows text;
  each record;
BEGIN
  FOREACH grows IN ARRAY ARRAY['peaks', 'phase_peaks', 'job_events', 'observations'] LOOP
    CREATE TEMPORARY TABLE constraints_before ON COMMIT DROP AS
      SELECT conname AS name, pg_get_constraintdef(oid) AS definition, contype AS kind
      FROM pg_constraint WHERE conrelid = grows::regclass AND contype IN ('p', 'f');
    CREATE TEMPORARY TABLE indexes_before ON COMMIT DROP AS
      SELECT indexname AS name, indexdef AS definition FROM pg_indexes
      WHERE schemaname = current_schema AND tablename = grows AND indexname NOT IN (SELECT name FROM constraints_before);

    FOR each IN SELECT name FROM indexes_before UNION ALL SELECT name FROM constraints_before WHERE kind = 'p' LOOP
      EXECUTE format('ALTER INDEX %I RENAME TO %I', each.name, each.name || '_default');
    END LOOP;
    EXECUTE format('ALTER TABLE %I RENAME TO %I', grows, grows || '_default');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY RANGE (prediction)', grows, grows || '_default');
    FOR each IN SELECT name, definition FROM constraints_before LOOP
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', grows, each.name, each.definition);
    END LOOP;
    FOR each IN SELECT definition FROM indexes_before LOOP
      EXECUTE each.definition;
    END LOOP;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', grows, grows || '_default');
    DROP TABLE constraints_before, indexes_before;
  END LOOP;
END $$;

-- The partition of one month of a table; a timer calls it ahead of time. An old month goes with DROP TABLE peaks_2027_01.
CREATE FUNCTION peakgate_add_month(grows text, month date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  bounds text[] := ARRAY(
    SELECT 'predictions/' || lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0')
    FROM unnest(ARRAY[month, month + interval '1 month']) AS moment ORDER BY moment);
BEGIN
  EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
    grows || to_char(month, '_YYYY_MM'), grows, bounds[1], bounds[2]);
END $$;

SELECT peakgate_add_month(grows, (date_trunc('month', now()) + ahead * interval '1 month')::date)
FROM unnest(ARRAY['peaks', 'phase_peaks', 'job_events', 'observations']) AS grows, generate_series(1, 3) AS ahead;
