-- On-sale days: holds of 90 seconds that nobody can extend (domain::seats::FLASH_HOLD_MS).
ALTER TABLE shows ADD COLUMN flash_sale boolean NOT NULL DEFAULT false;
