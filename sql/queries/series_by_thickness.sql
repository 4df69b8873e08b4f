-- The series of DICOM packs with their slice thickness in mm and number of images. Headers are read
-- of one instance a series.
--   SET VARIABLE pack = 'series.iac';  -- or 'dicom/*.iac'
SELECT patient_id, modality, iac_tag(record, 'SeriesDescription') AS description,
       iac_tag(record, 'SliceThickness')::DOUBLE AS thickness, images
FROM (SELECT patient_id, modality, series_uid, count(*) FILTER (has_pixel_data) AS images,
             arg_min(record, instance_number) AS record
      FROM iac_scan(getvariable('pack'))
      GROUP BY patient_id, modality, series_uid)
ORDER BY patient_id, modality, thickness, series_uid;
