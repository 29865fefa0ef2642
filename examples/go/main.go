// Streams an answer: client HOST:PORT PROMPT. Ctrl-C cancels it; ../README.md says more.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"lockstep.example/client/lockstep"
)

// Prints an answer as it comes. Returns whether it had begun, and what ended it.
func stream(ctx context.Context, channel *grpc.ClientConn, prompt string) (begun bool, err error) {
	answer, err := lockstep.NewInferenceClient(channel).Generate(ctx, &lockstep.GenerateRequest{
		Prompt:   &lockstep.GenerateRequest_Text{Text: prompt},
		Sampling: &lockstep.SamplingParams{Temperature: proto.Float32(0), MaxTokens: proto.Uint32(64)},
	})
	for ; err == nil; begun = begun || err == nil {
		var response *lockstep.GenerateResponse
		response, err = answer.Recv()
		fmt.Print(response.GetDelta().GetText())
	}
	return begun, err
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if limit, err := time.ParseDuration(os.Getenv("LOCKSTEP_DEADLINE_S") + "s"); err == nil {
		ctx, _ = context.WithTimeout(ctx, limit)
	}
	if key := os.Getenv("LOCKSTEP_API_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	security := insecure.NewCredentials()
	if authority := os.Getenv("LOCKSTEP_CA"); authority != "" {
		security, _ = credentials.NewClientTLSFromFile(authority, "")
	}
	channel, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(security))
	for attempt, begun := 0, false; err == nil; attempt++ {
		begun, err = stream(ctx, channel, os.Args[2])
		if code := status.Code(err); !begun && attempt < 3 && (code == codes.Unavailable || code == codes.ResourceExhausted) {
			time.Sleep(100 * time.Millisecond << attempt)
			err = nil
		}
	}
	if err != io.EOF {
		log.Fatal(err)
	}
}
