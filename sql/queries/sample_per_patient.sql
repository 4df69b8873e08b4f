-- Up to two notes of each patient, chosen by chance but the same ones in every run: iac_fraction
-- follows from the key alone. Another seed is another sample.
--   SET VARIABLE pack = 'notes.iac';
SELECT patient_id, note_id, iac_text(record) AS text
FROM (SELECT patient_id, note_id, record
      FROM iac_scan(getvariable('pack'))
      QUALIFY row_number() OVER (PARTITION BY patient_id
                                 ORDER BY iac_fraction(note_id, seed := 'pilot'), note_id) <= 2)
ORDER BY patient_id, note_id;
