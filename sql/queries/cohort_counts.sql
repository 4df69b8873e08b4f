-- How many patients and notes there are of each site and type, before any note is read.
--   SET VARIABLE pack = 'notes.iac';
SELECT site, note_type, count(DISTINCT patient_id) AS patients, count(*) AS notes
FROM iac_scan(getvariable('pack'))
GROUP BY site, note_type
ORDER BY site, note_type;
