// Package rename says how a member gets another cluster ID while every other
// member keeps what it imports from it: purely, from what was observed.
//
//	leader   credential ────────────────────────► withdraw ► forget
//	member     └► carry ► switch ► publish ┐         ▲
//	others                                 └► seen ──┘
//
// The old announce, and all exports with it, stands until every other member has
// ready endpoints of the new ID wherever it had some of the old.
package rename
