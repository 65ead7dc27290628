package rule

// Read is one thing that was looked up: its value, or why it could not be had.
// The zero Read was not looked up, which is no better than a failure.
type Read[T any] struct {
	value   T
	read    bool
	problem string
}

// Known is what was read. That nothing is there is knowledge too.
func Known[T any](value T) Read[T] { return Read[T]{value: value, read: true} }

// Unreadable is what could not be read, and the reason in a few words
// ("connection refused", "serviceaccounts is forbidden").
func Unreadable[T any](why string) Read[T] { return Read[T]{problem: why} }

// Get returns the value; ok is false when it is not known.
func (r Read[T]) Get() (value T, ok bool) { return r.value, r.read }

// Problem is why the value is not known.
func (r Read[T]) Problem() string {
	switch {
	case r.read:
		return ""
	case r.problem == "":
		return "nobody looked"
	}
	return r.problem
}
