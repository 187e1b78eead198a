-- A replica that loses power does not close its connections, and Postgres notices after two hours. Until then an open
-- transaction of it keeps its row locks. No transaction of the server waits for anything but Postgres and Redis.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = ''30s''', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the owner of this database should run: ALTER DATABASE % SET idle_in_transaction_session_timeout = ''30s''',
        quote_ident(current_database());
END $$;
