-- Prices stay what the buyer pays. A show stores which tax rate and which fee they contain.

ALTER TABLE shows
    ADD COLUMN tax_basis_points smallint NOT NULL DEFAULT 0 CHECK (tax_basis_points BETWEEN 0 AND 5000),
    ADD COLUMN fee_minor bigint NOT NULL DEFAULT 0 CHECK (fee_minor >= 0);
COMMENT ON COLUMN shows.tax_basis_points IS
    'Tax rate in its prices, hundredths of a percent. Set when the show is planned, from the tariff; never changed.';
COMMENT ON COLUMN shows.fee_minor IS 'Fee of each seat or place in its prices, minor units. As tax_basis_points.';

-- Receipts and reports of past sales are computed from these columns.
CREATE FUNCTION refuse_other_tax_or_fee() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'show % keeps its tax rate and its fee', OLD.id USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER shows_keep_their_tax_and_fee BEFORE UPDATE OF tax_basis_points, fee_minor ON shows FOR EACH ROW
    WHEN ((NEW.tax_basis_points, NEW.fee_minor) IS DISTINCT FROM (OLD.tax_basis_points, OLD.fee_minor))
    EXECUTE FUNCTION refuse_other_tax_or_fee();

-- The tax in a price, rounded half up, as in domain::pricing::ContainedTaxAndFee: the fee contains its own tax.
CREATE FUNCTION contained_tax(price_minor bigint, tax_basis_points smallint, fee_minor bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ((price_minor - least(fee_minor, price_minor)) * tax_basis_points + (10000 + tax_basis_points) / 2)
    / (10000 + tax_basis_points);
