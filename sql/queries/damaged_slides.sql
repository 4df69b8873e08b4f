-- The slides and patients whose records no longer match their crc32, nothing decoded.
--   SET VARIABLE pack = 'x.iac';
SELECT patient_id, slide_id, list(record.row ORDER BY record.row) AS rows
FROM iac_scan(getvariable('pack'))
WHERE NOT iac_verify(record)
GROUP BY patient_id, slide_id
ORDER BY patient_id, slide_id;
