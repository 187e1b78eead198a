//! Queries of moves: `moves` for their progress, `carry` for renumbering, `offers` for offers and mails.

mod carry;
mod moves;
mod offers;

pub(super) use carry::{
    archive_returned, carry_places, carry_seats, end_caller_holds, keep_house_seats, open_room, requeue_offers,
    standing_seats, step_all, take_out_claims,
};
pub(super) use moves::{
    CarriedCounts, FloorRow, MoveRow, ShowNow, SoldRow, begin, carried, count_open, drop_move, finish, floors,
    is_unsettled, last, lock_move, lock_show, lock_sold, open_moves, show, sold, take_unpaid,
};
pub(super) use offers::{DueMail, MovedBooking, has_open_offers, mark_mailed, postpone_mail, put_all, take_mail};
