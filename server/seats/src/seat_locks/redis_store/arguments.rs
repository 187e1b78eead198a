//! Writes the arguments of the scripts.

use domain::seats::{Places, SeatIndex};
use redis::Cmd;
use uuid::Uuid;

use super::super::{FencedSelection, RequestIdentity};

pub(super) fn write_asked(command: &mut Cmd, asked: RequestIdentity) {
    write_id(command, asked.id);
    command.arg(format!("{:016x}", asked.digest));
}

pub(super) fn write_id(command: &mut Cmd, id: Uuid) {
    command.arg(id.simple().encode_lower(&mut Uuid::encode_buffer()) as &str);
}

pub(super) fn write_seats(command: &mut Cmd, seats: &[SeatIndex]) {
    for seat in seats {
        command.arg(*seat);
    }
}

pub(super) fn write_places(command: &mut Cmd, places: &[Places]) {
    for place in places {
        command.arg(place.area).arg(place.count);
    }
}

pub(super) fn write_party(command: &mut Cmd, sale: &FencedSelection) {
    write_id(command, sale.hold);
    command.arg(&sale.owner).arg(sale.fence);
}

pub(super) fn write_sale(command: &mut Cmd, sale: &FencedSelection) {
    write_party(command, sale);
    command.arg(sale.selection.seats.len());
    write_seats(command, &sale.selection.seats);
    write_places(command, &sale.selection.places);
}

/// Formats places as the scripts do: "3=2,7=1".
pub(super) fn places_text(places: &[Places]) -> String {
    places.iter().map(|place| format!("{}={}", place.area, place.count)).collect::<Vec<_>>().join(",")
}
