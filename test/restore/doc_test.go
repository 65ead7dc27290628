// Package restore_test puts clusters back to earlier states, as an administrator
// does after a disaster, and watches that no import notices.
package restore_test
