package relay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Cut says how a link is interrupted.
type Cut string

const (
	// Open is a link that is not cut.
	Open Cut = ""
	// Silent keeps every byte back, in both directions, without an error
	// anywhere: an unplugged cable. After healing the bytes arrive, as TCP
	// would send them again.
	Silent Cut = "silent"
	// Refused resets what is open and refuses what is new: a dead machine
	// behind a live router.
	Refused Cut = "refused"
)

// Condition is the state of a link. The zero value is a perfect one.
type Condition struct {
	Cut Cut `json:"cut,omitempty"`
	// Latency is added to each direction, so a round trip takes twice as long.
	// It does not bound the throughput.
	Latency time.Duration `json:"latency,omitempty"`
	// Loss is the share of chunks, 0 to 1, that get lost. TCP sends them again,
	// so a loss is a delay, and a reset when it never ends.
	Loss float64 `json:"loss,omitempty"`
}

// Validate reports all that is wrong with a condition.
func (c Condition) Validate() error {
	var problems []error
	switch c.Cut {
	case Open, Silent, Refused:
	default:
		problems = append(problems, fmt.Errorf("cut %q is unknown; it is %q or %q", c.Cut, Silent, Refused))
	}
	if c.Latency < 0 {
		problems = append(problems, fmt.Errorf("latency %s is negative", c.Latency))
	}
	if !(c.Loss >= 0 && c.Loss <= 1) { // so, because NaN is neither
		problems = append(problems, fmt.Errorf("loss %v is not between 0 and 1", c.Loss))
	}
	return errors.Join(problems...)
}

func (c Condition) String() string {
	switch {
	case c == Condition{}:
		return "ok"
	case c.Cut != Open:
		return "cut (" + string(c.Cut) + ")"
	}
	text := "slow ("
	if c.Latency > 0 {
		text += c.Latency.String()
	}
	if c.Loss > 0 {
		if c.Latency > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%g%% loss", 100*c.Loss)
	}
	return text + ")"
}

// firstRetransmit is how long Linux waits at least before it sends a segment
// again (TCP_RTO_MIN); the wait doubles each time (RFC 6298, section 5.5).
const firstRetransmit = 200 * time.Millisecond

// maxRetransmits is after how many losses in a row a chunk counts as
// undeliverable: 200 ms × (1+2+4+8+16) = 6.2 s. Linux would try for 15 minutes;
// nobody waits that long in a lab.
const maxRetransmits = 5

// delay draws how late a chunk arrives, and false if it never does.
func (c Condition) delay() (time.Duration, bool) {
	late, wait := c.Latency, firstRetransmit
	for lost := 0; rand.Float64() < c.Loss; lost++ {
		if lost == maxRetransmits {
			return 0, false
		}
		late += wait
		wait *= 2
	}
	return late, true
}
