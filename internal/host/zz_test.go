package host
import ("testing")
func TestZ(t *testing.T){ t.Log(tryKVM()) }
