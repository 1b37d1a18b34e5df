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

// A parcel is an encoded step, for the host that does it.
type parcel struct {
	Version int `json:"version"`
	*Step
	Load json.RawMessage `json:"load"` // fields that only steps of this kind have
}

// Encode encodes a step and everything in it. It contains no value of a secret.
func Encode(s *Step) ([]byte, error) {
	load, known := loadOf(s)
	if !known {
		return nil, fmt.Errorf("a step of kind %q cannot be encoded", s.Kind)
	}
	text, err := json.Marshal(load)
	if err != nil {
		return nil, err
	}
	return json.Marshal(parcel{version, s, text})
}

// Decode returns an encoded step. It returns an error if the step has a field or kind that this
// version does not know.
func Decode(text []byte) (*Step, error) {
	p := parcel{Step: &Step{}}
	err := strictly(text, &p)
	if p.Version != version && p.Version != 0 { // the version comes first
		return nil, problem.New(problem.Unable, "a step is encoded as version %d, and this is version %d", p.Version,
			version).
			Try("install the same orrery on all hosts")
	}
	if err != nil {
		return nil, err
	}
	load, known := loadOf(p.Step)
	if !known {
		return nil, fmt.Errorf("a step of kind %q is not known", p.Kind)
	}
	return p.Step, strictly(p.Load, load)
}

func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // it is never wrapped
		return fmt.Errorf("something stands behind a step")
	}
	return nil
}

// The fields that steps of some kinds have in addition. The pointers refer to the fields of Step,
// for encoding and decoding.
type (
	networkLoad struct {
		Network **spec.Network `json:"network"`
		Was     **spec.Network `json:"was"`
	}
	namesLoad struct {
		Names *string           `json:"names"`
		Was   *string           `json:"was"`
		Tell  **inventory.Names `json:"tell"`
	}
	layerLoad struct {
		Layer **spec.Layer `json:"layer"`
	}
	volumeLoad struct {
		Path *string `json:"path"`
	}
	nodeLoad struct {
		Node **spec.Node `json:"node"`
		Was  **spec.Node `json:"was"`
	}
	stopLoad struct {
		nodeLoad
		Restarts *bool          `json:"restarts"`
		Timeout  *time.Duration `json:"timeout"`
	}
	rolesLoad struct {
		nodeLoad
		Duties **spec.Duties `json:"duties"`
	}
	bootLoad struct {
		rolesLoad
		Tell **inventory.Names `json:"tell"`
	}
	movesLoad struct {
		nodeLoad
		Moves *[]Move    `json:"moves"`
		At    *time.Time `json:"at"`
	}
	awayLoad struct {
		nodeLoad
		Sum        *string `json:"sum"`
		Runs       *bool   `json:"runs"`
		Configured *bool   `json:"configured"`
		Active     *bool   `json:"active"`
	}
	commitLoad struct {
		Releases **observe.Releases `json:"releases"`
		Was      **observe.Releases `json:"was"`
	}
)

// loadOf returns the additional fields of a step of its kind.
func loadOf(s *Step) (load any, known bool) {
	node := nodeLoad{&s.Node, &s.Was}
	roles := rolesLoad{node, &s.Duties}
	switch s.Kind {
	case PrepareHost, RestoreHost, BeginBatch, ForgetNames, ForgetRelease:
		return &struct{}{}, true // every field is in the JSON that users see
	case BuildLayer, FetchLayer:
		return &layerLoad{&s.Layer}, true
	case MakeNetwork, RemoveNetwork:
		return &networkLoad{&s.Network, &s.WasNetwork}, true
	case WriteNames, RestoreNames:
		return &namesLoad{&s.Names, &s.WasNames, &s.Tell}, true
	case RemoveVolume:
		return &volumeLoad{&s.Path}, true
	case CreateNode, ReplaceNode, RestoreNode, ReshapeNode, LimitNode, RenewNode, DestroyNode, RevertNode:
		return &node, true
	case StopNode, KillNode:
		return &stopLoad{node, &s.Restarts, &s.Timeout}, true
	case StartNode, ConfigureNode:
		return &bootLoad{roles, &s.Tell}, true
	case CheckNode, MendNode, RetireNode, TakeVolumes, ReturnVolumes, ActivateNode:
		return &roles, true
	case MoveLinks:
		return &movesLoad{node, &s.Moves, &s.At}, true
	case CopyNode, SendNode, GiveNode, ReceiveNode, LeaveNode, ReclaimNode, DropNode:
		return &awayLoad{node, &s.Sum, &s.Runs, &s.Configured, &s.Active}, true
	case CommitSwitch:
		return &commitLoad{&s.Releases, &s.WasReleases}, true
	}
	return nil, false
}
