package spec

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site"
)

// TestKernelLayers: a node that boots a kernel has a kernel layer just above the base. Its role
// layers are the same as for a container.
func TestKernelLayers(t *testing.T) {
	s := observatory()
	contained := nodeOf(t, s, 0)
	s.Nodes[0].Engine = "kvm"
	m := NewBuilder(s)
	chain := m.Layers(&s.Nodes[0])
	var kernels []string
	for i, l := range chain {
		for _, lower := range l.Lower() {
			if !slices.ContainsFunc(chain[:i], func(l *Layer) bool { return l.Digest == lower }) {
				t.Errorf("%s comes before %s, on which it stands", l.Title, lower)
			}
		}
		if l.IsKernel() {
			kernels = append(kernels, l.Digest)
			if l.IsBase() || l.Base != chain[0].Digest || !strings.HasPrefix(l.Title, chain[0].Title) || l.Kernel == "" {
				t.Errorf("%+v", l)
			}
		}
	}
	n, err := m.Node(&s.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(kernels) != 1 || n.Kernel != kernels[0] || contained.Kernel != "" {
		t.Errorf("kernels %v of a node with %q, and of a container with %q", kernels, n.Kernel, contained.Kernel)
	}
	if n.Base != contained.Base || n.Layer != contained.Layer || !slices.Equal(n.Below, contained.Below) ||
		Digest(n.Parts) != Digest(contained.Parts) {
		t.Errorf("the other layers are not those of a container: %+v, %+v", n, contained)
	}
	here := n.Layers()
	if i := slices.Index(here, n.Kernel); i != len(here)-2 || here[i+1] != n.Base || here[0] != n.Layer {
		t.Errorf("the kernel %s is not just above the base: %v", n.Kernel, here)
	}
	if plain := (&Node{Base: "b", Kernel: "k"}).Layers(); !slices.Equal(plain, []string{"k", "b"}) {
		t.Errorf("without role layers: %v", plain)
	}
	text, err := json.Marshal(contained)
	if err != nil || strings.Contains(string(text), `"kernel"`) {
		t.Errorf("a container is recorded as it was not before: %s, %v", text, err)
	}
}

// TestFullKernel: a machine with network cards of real hardware boots a kernel that has drivers for
// them.
func TestFullKernel(t *testing.T) {
	s := observatory()
	m := NewBuilder(s)
	kernels := map[string]string{}
	for model, want := range map[string]string{"": "linux-image-cloud-", site.Virtio: "linux-image-cloud-",
		site.E1000: "linux-image-" + runtime.GOARCH, site.RTL8139: "linux-image-" + runtime.GOARCH} {
		n := s.Nodes[1]
		n.Engine, n.VM.Model = site.KVM, model
		spelt, err := m.Node(&n)
		if err != nil {
			t.Fatal(err)
		}
		l := m.Layers(&n)[1]
		if !l.IsKernel() || l.Digest != spelt.Kernel || !strings.HasPrefix(l.Kernel, want) {
			t.Errorf("model %q boots %+v", model, l)
		}
		kernels[l.Kernel] = l.Digest
	}
	if len(kernels) != 2 {
		t.Errorf("%v", kernels)
	}
}

// TestKernelOfDistribution: the kernel is the distribution's, and another base has another kernel
// layer.
func TestKernelOfDistribution(t *testing.T) {
	debian := Base(site.Mirror{}, site.Image{Name: "a", Suite: "bookworm"})
	ubuntu := Base(site.Mirror{}, site.Image{Name: "b", Suite: "noble"})
	one, two := KernelLayer(site.Mirror{}, debian), KernelLayer(site.Mirror{}, ubuntu)
	if !strings.HasPrefix(one.Kernel, "linux-image-cloud-") || two.Kernel != "linux-image-virtual" ||
		one.Digest == two.Digest {
		t.Errorf("%+v, %+v", one, two)
	}
}
