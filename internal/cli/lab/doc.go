// Package lab is "lockstep lab": real clusters on this machine, and faults for
// them. The commands turn flags into options and call internal/lab.
package lab
