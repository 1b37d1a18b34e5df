package remote

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/transport/rpc"
)

// hostileText is what the host sends in every text.
const hostileText = "a1\x1b[2J"

// A hostile helper answers each request with an answer of the right type, whose texts must not be
// written to a terminal.
type hostile struct{ prepared }

func (hostile) ServeStream(_ context.Context, about string, with *rpc.ServerStream) error {
	var q json.RawMessage
	if err := with.Recv(&q); err != nil {
		return err
	}
	if about == greetMethod.name {
		return with.Send(map[string]any{"result": Greeting{Version: "1"}})
	}
	for _, m := range methods() {
		if name, _ := m.about(); name == about {
			answer := reflect.New(answerOf(m)).Elem()
			spoil(answer, 0)
			return with.Send(map[string]any{"result": answer.Interface()})
		}
	}
	return nil
}

// spoil sets all texts in a value, and gives each list one entry.
func spoil(v reflect.Value, depth int) {
	if depth > 8 || !v.CanSet() || v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText)
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*wireError]() {
			return // with a fault it would be an error, not an answer
		}
		v.Set(reflect.New(v.Type().Elem()))
		spoil(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			spoil(v.Index(0), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i), depth+1)
		}
	}
}

// asRecorded lists the methods whose texts are checked or sanitized where they are used.
var asRecorded = []string{
	"Nodes.List", "Nodes.WithOwner", "Nodes.ReadUsage", "State.Observe", "State.PublicKey", "State.Cordoned",
	"Releases.Read", "Layers.ContentInfo", "Twins.List",
	"Transfers.Send", "Volumes.Verify", "Layers.Describe",
}

// TestNothingRaw: every text that a host sends about what it has done or found is sanitized.
func TestNothingRaw(t *testing.T) {
	looked := 0
	for _, subject := range reflect.VisibleFields(reflect.TypeFor[apply.Host]()) {
		for i := range subject.Type.NumMethod() {
			m := subject.Type.Method(i)
			name := subject.Name + "." + m.Name
			if subject.Type == reflect.TypeFor[apply.NearHost]() || slices.Contains(nearby, name) ||
				slices.Contains(asRecorded, name) {
				continue
			}
			l := toHelper(t, hostile{})
			ask := arguments(t.Context(), m.Type)
			for k, a := range ask {
				// one answer for each element
				if a.Kind() == reflect.Slice && a.Type().Elem().Kind() != reflect.Pointer {
					ask[k] = reflect.MakeSlice(a.Type(), 1, 1)
				}
			}
			out := reflect.ValueOf(l.Host("s", nil)).FieldByIndex(subject.Index).MethodByName(m.Name).Call(ask)
			if err, failed := out[len(out)-1].Interface().(error); failed {
				t.Logf("%s refuses it: %v", name, err)
				continue
			}
			for _, value := range out {
				text, err := json.Marshal(value.Interface())
				if err != nil {
					continue // a stream
				}
				looked += strings.Count(string(text), "a1")
				if strings.Contains(string(text), `\u001b`) {
					t.Errorf("%s returns %s", name, text[:min(len(text), 200)])
				}
			}
		}
	}
	if looked < 10 {
		t.Errorf("%d texts were looked at", looked)
	}
}
