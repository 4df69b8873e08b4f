-- Training and validation rows, all of one patient on the same side. The list of rows is what a
-- training loop takes: CREATE TABLE split AS ...; a row keeps its side when others are added.
--   SET VARIABLE pack = 'notes.iac';
SELECT iac_split(patient_id, validation := 0.3, seed := 'study 1') AS part,
       count(DISTINCT patient_id) AS patients, list(DISTINCT patient_id ORDER BY patient_id) AS who,
       count(*) AS notes
FROM iac_scan(getvariable('pack'))
GROUP BY part
ORDER BY part;
