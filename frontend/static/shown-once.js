// Removes `done` from the address of a staff page that says what was just done. A reload then does not say it again: a
// seller who read twice which money to hand over would pay twice.
const address = new URL(location.href);
address.searchParams.delete("done");
history.replaceState(history.state, "", address);
