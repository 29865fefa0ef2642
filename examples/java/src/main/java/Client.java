import io.grpc.*;
import io.grpc.stub.MetadataUtils;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import lockstep.v1.InferenceGrpc;
import lockstep.v1.InferenceGrpc.InferenceBlockingStub;
import lockstep.v1.InferenceOuterClass.GenerateRequest;
import lockstep.v1.Sampling.SamplingParams;

/** Streams an answer: Client HOST:PORT PROMPT. Ctrl-C cancels it; ../README.md says more. */
public final class Client {
  private static final int ATTEMPTS = 4;
  private static boolean begun = false;

  /** Over TLS where $LOCKSTEP_CA names a file of certificates. */
  private static Channel connect(String address) throws IOException {
    String authority = System.getenv("LOCKSTEP_CA");
    return Grpc.newChannelBuilder(address, authority == null ? InsecureChannelCredentials.create()
        : TlsChannelCredentials.newBuilder().trustManager(new File(authority)).build()).build();
  }

  /** Prints an answer as it comes; a StatusRuntimeException is what ends it too soon. */
  private static void stream(InferenceBlockingStub stub, String prompt) {
    var sampling = SamplingParams.newBuilder().setTemperature(0).setMaxTokens(64);
    stub.generate(GenerateRequest.newBuilder().setText(prompt).setSampling(sampling).build()).forEachRemaining(response -> {
      begun = true;
      System.out.print(response.getDelta().getText());
      System.out.flush();
    });
  }

  private static boolean canRetry(Status.Code code) {
    return !begun && (code == Status.Code.UNAVAILABLE || code == Status.Code.RESOURCE_EXHAUSTED);
  }

  public static void main(String[] arguments) throws Exception {
    Metadata headers = new Metadata();
    String key = System.getenv("LOCKSTEP_API_KEY");
    if (key != null) headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + key);
    var stub = InferenceGrpc.newBlockingStub(connect(arguments[0]))
        .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
        .withDeadlineAfter(Long.parseLong(System.getenv().getOrDefault("LOCKSTEP_DEADLINE_S", "60")), TimeUnit.SECONDS);
    var call = Context.current().withCancellation();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> call.cancel(null)));
    for (int attempt = 1; ; ++attempt) {
      try {
        call.run(() -> stream(stub, arguments[1]));
        return;
      } catch (StatusRuntimeException error) {
        if (attempt == ATTEMPTS || !canRetry(error.getStatus().getCode())) {
          System.err.println("\n" + error.getMessage());
          Runtime.getRuntime().halt(1);
        }
        Thread.sleep(50L << attempt);
      }
    }
  }
}
