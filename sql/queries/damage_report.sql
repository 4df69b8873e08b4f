-- What is damaged in a pack: how many records for which reason, numbers left out, and the first of
-- them. No rows: the pack is sound. A reason without records is of the header or of a table.
--   SET VARIABLE pack = 'x.iac';
SELECT regexp_replace(reason, '\b(0x[0-9a-f]+|[0-9]+)\b', 'N', 'g') AS reason,
       count(row) AS records, min(row) AS first_row
FROM iac_check(getvariable('pack'))
GROUP BY ALL
ORDER BY records DESC, reason;
