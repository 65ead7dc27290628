package lab

// markName is the environment variable that every process of a lab carries.
const markName = "LOCKSTEP_LAB"

// mark is the mark of the lab in a directory.
func mark(dir string) string { return markName + "=" + dir }
