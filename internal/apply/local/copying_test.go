package local

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTally: the number of bytes is reported periodically, each byte once, and the rest at the end.
// After that, nothing is reported.
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		tally := &moveCounter{tell: func(bytes int64) { told = append(told, bytes) }, told: time.Now()}
		tally.add(5)
		tally.add(7)
		if len(told) > 0 {
			t.Errorf("told at once was %v", told)
		}
		time.Sleep(reportInterval + time.Millisecond)
		tally.add(1)
		tally.add(2)
		tally.end()
		tally.add(100)
		if len(told) != 2 || told[0] != 13 || told[1] != 2 {
			t.Errorf("told was %v", told)
		}
	})
}
