-- The patients of whom a pathology note of the colon speaks of a tumour at the margin. Only those
-- notes are decoded: the condition on their text stands behind CASE.
--   SET VARIABLE pack = 'notes.iac';
SELECT patient_id, count(*) AS notes, min(written) AS first
FROM iac_scan(getvariable('pack'))
WHERE CASE WHEN note_type = 'pathology' AND site = 'colon'
           THEN iac_text(record) LIKE '%margin%' END
GROUP BY patient_id
ORDER BY patient_id;
