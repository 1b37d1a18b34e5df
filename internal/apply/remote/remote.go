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

// A callTarget identifies the host and the site of a call, and the node for a Runner.
type callTarget struct {
	Host string     `json:"host"`
	Key  string     `json:"key"`
	Node *spec.Node `json:"node,omitempty"`
}

// A response is a message of the helper: progress, the result, or why there is none.
type response struct {
	transferMessage
	Detail   string          `json:"detail,omitempty"` // progress of a step
	Waits    string          `json:"waits,omitempty"`  // what the host is waiting for, such as a lock and its holder
	Want     *secretRequest  `json:"want,omitempty"`
	Progress *progress       `json:"progress,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Fault    *wireError      `json:"fault,omitempty"`
}

// A secretRequest is a helper's request for something that a step refers to and does not contain: the value
// of a secret, or a file that contains secrets.
type secretRequest struct {
	Secret string           `json:"secret,omitempty"`
	Text   *spec.SecretText `json:"text,omitempty"`
}

// A secretReply is the answer to a want, with all values that must not be displayed.
type secretReply struct {
	Value []byte            `json:"value,omitempty"`
	Known map[string]string `json:"known,omitempty"`
	Fault *wireError        `json:"fault,omitempty"`
}

// A Greeting describes a helper and its machine.
type Greeting struct {
	Version  string    `json:"version"`
	Machine  string    `json:"machine"` // the same for all names of one machine, and different for any two machines
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"time"`
}
