// Package drill has what a drill of a service asks of a host, and what the host reports.
//
// A drill does something to the node that holds the address of the service, and measures how long a client
// on its network gets no answer from the address.
package drill

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"net/netip"

	"orrery/internal/site/spec"
)

// What a drill can do to a node.
const (
	Stop   = "stop"   // shut it down
	Kill   = "kill"   // kill all its processes
	Freeze = "freeze" // freeze all its processes for some seconds
	Cut    = "cut"    // take its link to the network down for some seconds
)

// Faults are all of these.
var Faults = []string{Stop, Kill, Freeze, Cut}

// A Request says what to do on a host.
type Request struct {
	Service string     `json:"service"`
	Address netip.Addr `json:"address"`
	Network string     `json:"network"`
	Fault   string     `json:"fault"`
	Holder  *spec.Node `json:"holder"` // on this host
	// Members are the nodes of the service, by their hardware address on the network.
	Members map[string]string `json:"members"`
}

// A Result is what a drill has measured.
type Result struct {
	Service string    `json:"service"`
	Fault   string    `json:"fault"`
	At      time.Time `json:"at"`
	Holder  string    `json:"holder"` // node that had the address before
	Client  string    `json:"client"` // node that asked, or "" for the host
	// Next is the node that took over, or "" if none did.
	Next string `json:"next,omitempty"`
	// Gap is how long the client got no answer, in seconds, or 0 if less than it can see.
	Gap float64 `json:"gap"`
	// Takeover is how long after the fault another node first answered for the address, in seconds.
	Takeover float64 `json:"takeover"`
	// Both is how long two nodes answered for it after that, in seconds.
	Both float64 `json:"both,omitempty"`
	// Return is the gap when the node came back, in seconds, for faults that the drill itself ends.
	Return float64 `json:"return,omitempty"`
	// Answers are the nodes that answered for the address at the end: one, if all is well. A machine that is
	// no node of the service is its hardware address.
	Answers []string `json:"answers"`
	Stopped bool     `json:"stopped,omitempty"` // the holder is stopped, and must be started again
}

// Good reports whether another node took over and holds the address alone.
func (r *Result) Good() bool { return r.Next != "" && len(r.Answers) == 1 }

// String returns the result as a sentence.
func (r *Result) String() string {
	text := fmt.Sprintf("%s of %s: ", r.Fault, r.Holder)
	switch {
	case r.Next == "":
		return text + "no other node took over"
	case r.Gap == 0:
		text += "no gap"
	default:
		text += fmt.Sprintf("gap %.2f s", r.Gap)
	}
	text += ", " + r.Next + " took over"
	if !r.Good() {
		text += fmt.Sprintf("; at the end, %d machines answered", len(r.Answers))
	}
	return text
}

// RecordName returns the name under which hosts record the last drill of a service. Names of services are as
// long as those of records may be.
func RecordName(service string) string { return "drill-" + spec.DigestBytes([]byte(service)) }

// maxRecordBytes limits a record that is read, which a host sends.
const maxRecordBytes = 8 << 10

// Parse returns a result from its record, or false if the record has none.
func Parse(record string) (r Result, ok bool) {
	if record == "" || len(record) > maxRecordBytes || json.Unmarshal([]byte(record), &r) != nil {
		return Result{}, false
	}
	return r, slices.Contains(Faults, r.Fault)
}

// Format returns the record of a result.
func Format(r Result) string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // plain data always marshals
	}
	return string(text)
}
