-- A replica that loses power does not close its connections, and Postgres notices after two hours. Until then an open
-- transaction of it keeps its row locks. No transaction of the server waits for anything but Postgres and Redis.
-- And a query whose connection was closed ends soon: its place in the pool is free, so another query may run.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = ''30s''', current_database());
    EXECUTE format('ALTER DATABASE %I SET client_connection_check_interval = ''2s''', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the owner of this database should set, with ALTER DATABASE % SET, idle_in_transaction_session_timeout to 30s and client_connection_check_interval to 2s',
        quote_ident(current_database());
END $$;
