-- A text as it is searched: without accents and case, fractions written out (33⅓ as 33 1/3), letters that are no other
-- letter with an accent (ø, đ, ı) as those they are typed with where there is no key for them. Immutable: it depends on
-- its argument alone.
CREATE FUNCTION search_text(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT replace(replace(replace(replace(
               translate(
                   lower(regexp_replace(
                       normalize(regexp_replace(value, '([¼½¾⅐-⅞])', ' \1', 'g'), NFKD),
                       '[\u0300-\u036f]', '', 'g')),
                   'ıłøđðħŧ⁄’‘', 'iloddht/'),
               'æ', 'ae'), 'œ', 'oe'), 'ß', 'ss'), 'þ', 'th')
$$;

-- Texts from before such marks were refused: they reorder the text that follows them.
UPDATE films SET title = regexp_replace(title, '[\u202a-\u202e\u2066-\u2069]', '', 'g')
WHERE title ~ '[\u202a-\u202e\u2066-\u2069]';
UPDATE theatres SET name = regexp_replace(name, '[\u202a-\u202e\u2066-\u2069]', '', 'g')
WHERE name ~ '[\u202a-\u202e\u2066-\u2069]';
UPDATE screens SET name = regexp_replace(name, '[\u202a-\u202e\u2066-\u2069]', '', 'g')
WHERE name ~ '[\u202a-\u202e\u2066-\u2069]';
