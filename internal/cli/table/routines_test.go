package table

import (
	"bytes"
	"testing"
	"time"

	"orrery/internal/cli/reply"
	"orrery/internal/control/status"
	"orrery/internal/observe/routine"
)

// TestRoutines: status tells the age of the last backup and snapshot, and what has failed since.
func TestRoutines(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	before := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	all := []status.Routine{
		{Name: "backup", Record: routine.Record{Done: before(26), Failures: 2, Why: "no space\x1b[2J\nleft"}},
		{Name: "backup", Record: routine.Record{Done: before(2)}},
		{Name: "backup"},
		{Name: "backup", Record: routine.Record{Failures: 3, Why: "x"}},
		{Name: "snapshot", Record: routine.Record{Done: before(72)}, Next: before(71), Late: true},
		{Name: "watch", Record: routine.Record{Done: before(1)}},
		{Name: "watch", Record: routine.Record{Done: before(1), Failures: 1, Why: "y"}},
	}
	const want = `last backup 26 h ago, failed twice since: no space\x1b[2J\nleft
last backup 2 h ago
no backup yet
no backup yet, failed 3 times since: x
last snapshot 3 days ago, the next one was due 2 days ago: orrery up sets its timer again
last watch 1 h ago, failed once since: y
`
	var out bytes.Buffer
	if err := Routines(&out, all, now); err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
	var object bytes.Buffer
	r := reply.New(&object, &bytes.Buffer{})
	if err := Nodes(r, []status.Node{}, false, 0); err != nil {
		t.Fatal(err)
	}
	if err := Routines(r, all[1:2], now); err != nil {
		t.Fatal(err)
	}
	r.Finish(nil)
	const json = `{"version": 1, "result": []
, "routines": [
  {
    "routine": "backup",
    "done": "2026-11-28T10:00:00Z"
  }
]
, "errors": []
, "status": 0}
`
	if object.String() != json {
		t.Errorf("%s", object.String())
	}
}
