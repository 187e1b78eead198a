-- Caps on seats a person may have count by mailbox: an address without the case of its letters and without the tag that
-- some write behind a plus. The same rule in Rust: server/src/accounts/person.rs, mailbox.
CREATE FUNCTION mailbox(address text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(regexp_replace(address, '^([^@+]+)\+[^@]*@', '\1@') COLLATE "C");

-- Whose account a guest's address may be of.
CREATE INDEX accounts_by_mailbox ON accounts (mailbox(email));
