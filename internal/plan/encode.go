package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// version is the version of the encoding. A host cannot decode any other version.
const version = 1

// An encodedStep is an encoded step, for the host that does it.
type encodedStep struct {
	Version int `json:"version"`
	*Step
	Load json.RawMessage `json:"load"` // fields that only steps of this kind have
}

// Encode encodes a step and everything in it. It contains no value of a secret.
func Encode(s *Step) ([]byte, error) {
	load, known := payloadOf(s)
	if !known {
		return nil, fmt.Errorf("a step of kind %q cannot be encoded", s.Kind)
	}
	text, err := json.Marshal(load)
	if err != nil {
		return nil, err
	}
	return json.Marshal(encodedStep{version, s, text})
}

// Decode returns an encoded step. It returns an error if the step has a field or kind that this
// version does not know.
func Decode(text []byte) (*Step, error) {
	p := encodedStep{Step: &Step{}}
	err := decodeStrict(text, &p)
	if p.Version != version && p.Version != 0 { // the version comes first
		return nil, problem.New(problem.Unable, "the step has version %d, but this orrery has version %d", p.Version,
			version).
			Try("install the same version of orrery on all hosts")
	}
	if err != nil {
		return nil, err
	}
	load, known := payloadOf(p.Step)
	if !known {
		return nil, fmt.Errorf("a step of kind %q is unknown", p.Kind)
	}
	return p.Step, decodeStrict(p.Load, load)
}

func decodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // it is never wrapped
		return fmt.Errorf("unexpected data after the step")
	}
	return nil
}

// The fields that steps of some kinds have in addition. The pointers refer to the fields of Step,
// for encoding and decoding.
type (
	networkPayload struct {
		Network **spec.Network `json:"network"`
		Was     **spec.Network `json:"was"`
	}
	namesPayload struct {
		Names *string              `json:"names"`
		Was   *string              `json:"was"`
		Tell  **inventory.PeerInfo `json:"tell"`
	}
	layerPayload struct {
		Layer **spec.Layer `json:"layer"`
	}
	volumePayload struct {
		Path *string `json:"path"`
	}
	nodePayload struct {
		Node **spec.Node `json:"node"`
		Was  **spec.Node `json:"was"`
	}
	stopPayload struct {
		nodePayload
		Restarts *bool          `json:"restarts"`
		Timeout  *time.Duration `json:"timeout"`
	}
	rolesPayload struct {
		nodePayload
		Duties **spec.RoleActions `json:"duties"`
	}
	bootPayload struct {
		rolesPayload
		Tell **inventory.PeerInfo `json:"tell"`
	}
	movesPayload struct {
		nodePayload
		Moves *[]Move    `json:"moves"`
		At    *time.Time `json:"at"`
	}
	handoverPayload struct {
		nodePayload
		Sum        *string `json:"sum"`
		Runs       *bool   `json:"runs"`
		Configured *bool   `json:"configured"`
		Active     *bool   `json:"active"`
	}
	commitPayload struct {
		Releases **observe.Releases `json:"releases"`
		Was      **observe.Releases `json:"was"`
	}
)

// payloadOf returns the additional fields of a step of its kind.
func payloadOf(s *Step) (load any, known bool) {
	node := nodePayload{&s.Node, &s.Old}
	roles := rolesPayload{node, &s.Duties}
	switch s.Kind {
	case PrepareHost, RestoreHost, BeginBatch, ForgetNames, ForgetRelease:
		return &struct{}{}, true // every field is in the JSON that users see
	case BuildLayer, FetchLayer:
		return &layerPayload{&s.Layer}, true
	case MakeNetwork, RemoveNetwork:
		return &networkPayload{&s.Network, &s.OldNetwork}, true
	case WriteNames, RestoreNames:
		return &namesPayload{&s.Names, &s.OldNames, &s.Tell}, true
	case RemoveVolume:
		return &volumePayload{&s.Path}, true
	case CreateNode, ReplaceNode, RestoreNode, ReshapeNode, LimitNode, RenewNode, DestroyNode, RevertNode:
		return &node, true
	case StopNode, KillNode:
		return &stopPayload{node, &s.Restarts, &s.Timeout}, true
	case StartNode, ConfigureNode:
		return &bootPayload{roles, &s.Tell}, true
	case CheckNode, RepairNode, RetireNode, TakeVolumes, ReturnVolumes, ActivateNode:
		return &roles, true
	case MoveLinks:
		return &movesPayload{node, &s.Moves, &s.At}, true
	case CopyNode, SendNode, HandOverNode, ReceiveNode, CleanUpNode, ReclaimNode, DiscardNode:
		return &handoverPayload{node, &s.Digest, &s.Runs, &s.Configured, &s.Active}, true
	case CommitSwitch:
		return &commitPayload{&s.Releases, &s.OldReleases}, true
	}
	return nil, false
}
