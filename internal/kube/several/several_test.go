package several_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/kube/several"
)

func TestEachKeepsTheOrderAndWaitsForNobody(t *testing.T) {
	second := make(chan bool)
	got := several.Each([]int{1, 2}, func(n int) int {
		if n == 1 {
			<-second // which one after the other would never come
		} else {
			close(second)
		}
		return 10 * n
	})
	if want := []int{10, 20}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhoeverIsLateIsLeftBehind(t *testing.T) {
	never := make(chan bool)
	defer close(never)
	if got, ok := several.Within(t.Context(), time.Millisecond, func(context.Context) int { <-never; return 1 }); ok {
		t.Errorf("got %d of a look that does not end", got)
	}
	if got, ok := several.Within(t.Context(), time.Minute, func(context.Context) int { return 1 }); !ok || got != 1 {
		t.Errorf("got %d, %t", got, ok)
	}
}
