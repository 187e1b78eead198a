-- Every replica asks every two seconds which visitors were handed over to accounts lately: from then on it replays no
-- answer of theirs to a guest (accounts/handed_over.rs).
CREATE INDEX account_visitors_by_time ON account_visitors (joined_at);
