package remote

import (
	"encoding/json"
	"time"

	"orrery/internal/site/spec"
)

// maxPieceBytes limits a piece of a stream in one message. maxJournalBytes limits a journal; hosts
// keep less than that.
const (
	maxPieceBytes   = 64 << 10
	maxJournalBytes = 64 << 20
)

// A place identifies the host and the site of a call, and the node for a Runner.
type place struct {
	Host string     `json:"host"`
	Key  string     `json:"key"`
	Node *spec.Node `json:"node,omitempty"`
}

// A word is a message of the helper: progress, the result, or why there is none.
type word struct {
	passed
	Detail   string          `json:"detail,omitempty"` // progress of a step
	Waits    string          `json:"waits,omitempty"`  // what the host is waiting for, such as a lock and its holder
	Want     *want           `json:"want,omitempty"`
	Progress *progress       `json:"progress,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Fault    *fault          `json:"fault,omitempty"`
}

// A want is a helper's request for something that a step refers to and does not contain: the value
// of a secret, or a file that contains secrets.
type want struct {
	Secret string           `json:"secret,omitempty"`
	Text   *spec.SecretText `json:"text,omitempty"`
}

// A given is the answer to a want, with all values that must not be displayed.
type given struct {
	Value []byte            `json:"value,omitempty"`
	Known map[string]string `json:"known,omitempty"`
	Fault *fault            `json:"fault,omitempty"`
}

// A Greeting describes a helper and its machine.
type Greeting struct {
	Version  string    `json:"version"`
	Machine  string    `json:"machine"` // the same for all names of one machine, and different for any two machines
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"time"`
}
