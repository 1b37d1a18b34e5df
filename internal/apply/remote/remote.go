package remote

import (
	"encoding/json"
	"time"

	"orrery/internal/site/spec"
)

// maxPieceBytes bounds a piece of a stream in one message, and maxJournalBytes a journal, of which
// less is kept.
const (
	maxPieceBytes   = 64 << 10
	maxJournalBytes = 64 << 20
)

// A place is which host of which site a call is about, and for the way into a node, which.
type place struct {
	Host string     `json:"host"`
	Key  string     `json:"key"`
	Node *spec.Node `json:"node,omitempty"`
}

// A word is a message of the helper: something on the way, or the result, or why there is none.
type word struct {
	passed
	Detail   string          `json:"detail,omitempty"` // of a step
	Waits    string          `json:"waits,omitempty"`  // for somebody else over there, such as who has a lock
	Want     *want           `json:"want,omitempty"`
	Progress *progress       `json:"progress,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Fault    *fault          `json:"fault,omitempty"`
}

// A want is the question of the helper for what a step refers to and has not with it: the value of
// a secret, or a file that has some in it.
type want struct {
	Secret string           `json:"secret,omitempty"`
	Text   *spec.SecretText `json:"text,omitempty"`
}

// A given is the answer to it, with all values that are not to be shown.
type given struct {
	Value []byte            `json:"value,omitempty"`
	Known map[string]string `json:"known,omitempty"`
	Fault *fault            `json:"fault,omitempty"`
}

// Greeting is what a helper says of itself and of its machine.
type Greeting struct {
	Version  string    `json:"version"`
	Machine  string    `json:"machine"` // the same for any two names of one machine, and no two machines
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"time"`
}
